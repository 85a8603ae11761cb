// heddle explain: what each fusion did, what that saves, and what it left alone.
#include "frontend/cli/explanation.h"
#include "frontend/cli/layers.h"
#include "frontend/cli/options.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <filesystem>

namespace heddle::command {

using runtime::formatBytes;

//===-- For people
//------------------------------------------------------------------------------===//

/// The file as it was compiled; from the working folder where it lies in it. What was compiled from
/// a folder below its sources, `../../model.cpp`, is looked for in the working folder too.
static std::string fromHere(const std::string &file) {
  namespace fs = std::filesystem;
  std::error_code unknown; // a working folder that is gone
  const fs::path path(file), here = fs::current_path(unknown);
  if (unknown)
    return file;
  if (path.is_relative()) {
    fs::path inside;
    for (const fs::path &part : path)
      if (!inside.empty() || part != "..")
        inside /= part;
    return fs::exists(path, unknown) || !fs::exists(inside, unknown) ? file : inside.string();
  }
  const fs::path relative = path.lexically_normal().lexically_relative(here);
  return relative.empty() || *relative.begin() == ".." ? file : relative.string();
}

/// "models/llama.cpp:19,20  attention.cpp:7": the lines of each file together.
static std::string placesText(const std::vector<std::string> &places) {
  std::string text, current;
  for (const std::string &place : places) {
    size_t colon = place.rfind(':');
    std::string file = place.substr(0, colon);
    bool same = !text.empty() && file == current;
    text += same ? "," : (text.empty() ? "" : "  ") + fromHere(file) + ":";
    text += place.substr(colon + 1);
    current = file;
  }
  return text;
}

/// What is said of one layer, for all of `sites`: names within the layer, by themselves.
static std::string told(const Sites &sites, std::string text) {
  auto layer = layerOf(sites.first.id);
  if (!layer || sites.ids.size() == 1)
    return text;
  text = replaced(ofAnyLayer(std::move(text), *layer), layer->prefix + "*.", "");
  return replaced(std::move(text), layer->prefix + "*+1.", "the next one's ");
}

static std::string sitesText(const Sites &sites, const std::string &what) {
  std::string text = "    " + sites.operation + "\n      " + told(sites, what) + "\n";
  if (!sites.first.places.empty())
    text += "      " + dim("at " + placesText(sites.first.places)) + "\n";
  return text;
}

/// "645 kB", or "costs 645 kB" where less than nothing is saved.
static std::string savedBytes(int64_t count) {
  return count < 0 ? "costs " + formatBytes(-count) : formatBytes(count);
}

static std::string savedPhases(int64_t count) {
  return count < 0 ? "costs " + counted(-count, "phase") : counted(count, "phase");
}

/// ", 262 kB of attention workspace".
static std::string scoresText(int64_t saved) {
  return saved == 0 ? "" : fmt::format(", {} of attention workspace", savedBytes(saved));
}

/// "2 phases, 1.05 MB moved, 262 kB of attention workspace".
static std::string costText(const StepCost &cost) {
  return fmt::format("{}, {} moved", savedPhases(cost.phases), savedBytes(cost.bytesMoved)) +
         scoresText(cost.attentionBytes);
}

static std::string siteSavingText(const SiteSaving &saving) {
  std::string text = "prefill " + costText(saving.prefill);
  return saving.decode ? text + "; decode " + costText(*saving.decode) : text;
}

static bool isNothing(const SiteSaving &saving) {
  return saving.prefill == StepCost() && saving.decode.value_or(StepCost()) == StepCost();
}

/// What all of `sites` save.
static std::string placeSavingText(const Sites &sites) {
  return sites.saving ? "      " + dim("saves " + siteSavingText(*sites.saving)) + "\n" : "";
}

static std::string savingText(const char *phase, const ModelledCost &with,
                              const ModelledCost &without) {
  auto bytes = [](int64_t less, int64_t of) {
    return savedBytes(of - less) + (less > of ? " beyond " : " of ") + formatBytes(of);
  };
  const std::string phases =
      with.phases > without.phases
          ? savedPhases(without.phases - with.phases) + " beyond " + std::to_string(without.phases)
          : fmt::format("{} of {}", without.phases - with.phases, counted(without.phases, "phase"));
  return fmt::format("    {:<8} {}, {} moved, {} of activations", phase, phases,
                     bytes(with.bytesMoved, without.bytesMoved),
                     bytes(with.arenaBytes, without.arenaBytes)) +
         scoresText(without.attentionBytes - with.attentionBytes) + "\n";
}

static std::string fusionText(const FusionStory &fusion, const Story &story) {
  std::string text = "\n" + bold(fusion.name) + ": " + fusion.summary + "\n";
  if (!fusion.on)
    return text + "  declined by --fuse\n";
  if (fusion.fired.empty())
    text += "  did not fire\n";
  else
    text += "  fired " + counted(fusion.count, "time") + ":\n";
  for (const Sites &sites : fusion.fired) {
    std::string parts;
    for (const std::string &id : sites.first.from)
      parts += (parts.empty() ? "" : " + ") + id;
    text += sitesText(sites, parts) + placeSavingText(sites);
  }
  if (fusion.without) {
    text += "  saves\n" + savingText("prefill", story.costs->prefill, fusion.without->prefill);
    if (story.costs->decode)
      text += savingText("decode", *story.costs->decode, *fusion.without->decode);
    if (fusion.elsewhere && !isNothing(*fusion.elsewhere))
      text += "    of that elsewhere: " + siteSavingText(*fusion.elsewhere) + "\n";
  }
  if (!fusion.declined.empty())
    text += "  declined by measurement, in calls\n";
  for (const Sites &sites : fusion.declined)
    text += sitesText(sites, sites.first.declined);
  if (!fusion.missed.empty())
    text += "  missed:\n";
  for (const Sites &sites : fusion.missed) {
    const FusionEvent &event = sites.first;
    text +=
        sitesText(sites, event.remedy.empty() ? event.reason : event.reason + "; " + event.remedy);
  }
  return text;
}

static std::string storyText(const Story &story, const std::string &title) {
  std::string text = bold(title) + ": fusions " + story.info.fuse + "; ";
  if (story.costs)
    text += "savings by the model, for a prompt of " + counted(story.tokens, "token") +
            " and one token decoded after it\n";
  else
    text += "savings are not known: " + story.whyNoCosts + "\n";
  for (const FusionStory &fusion : story.fusions)
    text += fusionText(fusion, story);
  return text;
}

//===-- For programs
//----------------------------------------------------------------------------===//

static Json stringsJson(const std::vector<std::string> &strings) {
  return Json::array(std::vector<Json>(strings.begin(), strings.end()));
}

static Json costJson(const ModelledCost &cost) {
  return Json::object({{"phases", cost.phases},
                       {"bytes_moved", cost.bytesMoved},
                       {"arena_bytes", cost.arenaBytes},
                       {"attention_bytes", cost.attentionBytes}});
}

/// The activations of a program lie in one arena, of which no place has a share.
static Json costJson(const StepCost &cost) {
  return Json::object({{"phases", cost.phases},
                       {"bytes_moved", cost.bytesMoved},
                       {"arena_bytes", Json::null()},
                       {"attention_bytes", cost.attentionBytes}});
}

/// Of `ModelledCosts` or a `SiteSaving`: null where there is none, as in decode.
template <class Costs>
static Json costsJson(const std::optional<Costs> &costs) {
  if (!costs)
    return Json::null();
  return Json::object({{"prefill", costJson(costs->prefill)},
                       {"decode", costs->decode ? costJson(*costs->decode) : Json::null()}});
}

static Json savedJson(const FusionStory &fusion, const Story &story) {
  if (!fusion.without)
    return Json::null();
  auto less = [](const ModelledCost &without, const ModelledCost &with) {
    return ModelledCost{.phases = without.phases - with.phases,
                        .bytesMoved = without.bytesMoved - with.bytesMoved,
                        .arenaBytes = without.arenaBytes - with.arenaBytes,
                        .attentionBytes = without.attentionBytes - with.attentionBytes};
  };
  ModelledCosts saved{.prefill = less(fusion.without->prefill, story.costs->prefill)};
  if (story.costs->decode)
    saved.decode = less(*fusion.without->decode, *story.costs->decode);
  return costsJson(std::optional(saved));
}

static Json fusionJson(const FusionStory &fusion, const Story &story) {
  std::vector<Json> sites, misses, unpaid;
  for (const Sites &one : fusion.fired)
    sites.push_back(Json::object({{"operation", one.operation},
                                  {"ids", stringsJson(one.ids)},
                                  {"from", stringsJson(one.first.from)},
                                  {"places", stringsJson(one.first.places)},
                                  {"saved", costsJson(one.saving)}}));
  for (const Sites &one : fusion.missed)
    misses.push_back(Json::object({{"operation", one.operation},
                                   {"ids", stringsJson(one.ids)},
                                   {"reason", one.first.reason},
                                   {"remedy", one.first.remedy},
                                   {"places", stringsJson(one.first.places)}}));
  for (const Sites &one : fusion.declined)
    unpaid.push_back(Json::object({{"operation", one.operation},
                                   {"ids", stringsJson(one.ids)},
                                   {"shape", one.first.shape},
                                   {"measured", one.first.declined},
                                   {"places", stringsJson(one.first.places)}}));
  return Json::object({{"name", fusion.name},
                       {"summary", fusion.summary},
                       {"declined", fusion.on ? Json::null() : Json("--fuse")},
                       {"fired", fusion.count},
                       {"sites", Json::array(sites)},
                       {"saved", savedJson(fusion, story)},
                       {"saved_elsewhere", costsJson(fusion.elsewhere)},
                       {"unpaid", Json::array(unpaid)},
                       {"missed", Json::array(misses)}});
}

static Json storyJson(const Story &story) {
  std::vector<Json> fusions;
  for (const FusionStory &fusion : story.fusions)
    fusions.push_back(fusionJson(fusion, story));
  return Json::object({{"tokens", story.tokens},
                       {"fuse", story.info.fuse},
                       {"isa", story.info.isa},
                       {"costs", costsJson(story.costs)},
                       {"fusions", Json::array(fusions)}});
}

//===-- The verb
//--------------------------------------------------------------------------------===//

int explain(const Invocation &invocation) {
  Parser parser(invocation, "Says where each fusion fired and what it saves, where it did not and "
                            "why, and what to do about it. Reads no weights, generates no code.");
  parser.addModel();
  int64_t tokens = 0;
  std::string json;
  parser.addNumber("--prompt-tokens", tokens, 1, 1 << 24,
                   "length of the prompt that savings are modelled for (512, or what fits)");
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;
  auto model = parser.load();
  if (!model)
    return fail(model.error());
  ProgressLine progress(!parser.common.quiet);
  auto story = tellFusions(*model, parser.common.compileOptions(), tokens, progress);
  if (!story)
    return fail(story.error());
  Status written = report(storyText(*story, model->name), storyJson(*story), json);
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
