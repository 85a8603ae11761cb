// How functions of Heddle report failure: a value or an error, never an exception.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace heddle {

/// Whose mistake an error is; it decides the exit code of the command line.
enum class ErrorKind {
  usage,    ///< the command line or an argument of the API: exit code 2
  data,     ///< a file, a model or its data: exit code 1
  internal, ///< a bug of Heddle: exit code 70; the text asks for a report
};

/// What went wrong, in one line: what was found and what would be right. Lower case, no full stop.
struct Error {
  ErrorKind kind = ErrorKind::data;
  std::string message;
};

inline Error usageError(std::string message) { return {ErrorKind::usage, std::move(message)}; }
inline Error dataError(std::string message) { return {ErrorKind::data, std::move(message)}; }
inline Error internalError(std::string message) {
  return {ErrorKind::internal, std::move(message) + " (this is a bug of heddle; please report it)"};
}

/// Either a `T` or the `Error` that kept it from being made.
template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() & { return std::get<0>(state); }
  const T &operator*() const & { return std::get<0>(state); }
  T &&operator*() && { return std::get<0>(std::move(state)); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }
  const Error &error() const { return std::get<1>(state); }

private:
  std::variant<T, Error> state;
};

/// Success, or the `Error` that stopped it.
template <>
class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : failure(std::move(error)) {}

  explicit operator bool() const { return !failure; }
  const Error &error() const { return *failure; }

private:
  std::optional<Error> failure;
};

using Status = Result<void>;

} // namespace heddle
