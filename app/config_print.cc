// PrintConfig(): the configuration as a file, every key with its value, range, default and meaning.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "app/config.h"
#include "app/config_fields.h"

namespace halfpage {
namespace {

constexpr size_t kCommentColumn = 40;

std::string PathOf(absl::string_view above, absl::string_view key) {
  return absl::StrCat(above, ".", key);
}

// A list as one value or in brackets; nothing where its items are maps.
std::string OnOneLine(const FieldList& list) {
  if (list.word.has_value()) {
    const std::string word = list.word->format();
    if (!word.empty()) return word;
  }
  if (list.size() == 0) return "[]";
  if (!list.value) return "";
  std::vector<std::string> items;
  for (size_t i = 0; i < list.size(); ++i) {
    items.push_back(list.value(i).format());
    if (items.back().empty()) return "";
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// Notes what each key says in a configuration that says nothing.
class DefaultCollector : public FieldVisitor {
 public:
  const std::string& Of(const std::string& path) { return texts_[path]; }

  void Value(const FieldInfo& info, const FieldValue& value) override {
    texts_.emplace(PathOf(above_, info.key), value.format());
  }
  void List(const FieldInfo& info, const FieldList& list) override {
    texts_.emplace(PathOf(above_, info.key), OnOneLine(list));
    if (list.default_fields) Below(info, list.default_fields);
  }
  void Section(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) override {
    Below(info, fields);
  }
  void When(bool, absl::string_view, absl::string_view) override {}
  void Always() override {}

 private:
  void Below(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) {
    const std::string above = std::exchange(above_, PathOf(above_, info.key));
    fields(*this);
    above_ = above;
  }

  std::map<std::string, std::string> texts_;
  std::string above_;
};

class Printer : public FieldVisitor {
 public:
  Printer(DefaultCollector& defaults, std::string* out) : defaults_(defaults), out_(out) {}

  void Value(const FieldInfo& info, const FieldValue& value) override {
    if (applies_) Line(info, value.format(), value.rule);
  }

  void List(const FieldInfo& info, const FieldList& list) override {
    if (!applies_) return;
    const std::string text = OnOneLine(list);
    if (indent_ == 0) *out_ += '\n';
    Line(info, text, list.word.has_value() ? list.word->rule : "");
    if (!text.empty()) return;
    for (size_t i = 0; i < list.size(); ++i) {
      Printer item(defaults_, out_);
      item.above_ = PathOf(above_, info.key);
      item.indent_ = indent_ + 4;
      item.dash_ = true;
      list.fields(i, item);
    }
  }

  void Section(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) override {
    if (!applies_) return;
    if (indent_ == 0) *out_ += '\n';
    Line(info, "", "");
    Printer section(defaults_, out_);
    section.above_ = PathOf(above_, info.key);
    section.indent_ = indent_ + 2;
    fields(section);
  }

  void When(bool applies, absl::string_view, absl::string_view) override { applies_ = applies; }
  void Always() override { applies_ = true; }

 private:
  void Line(const FieldInfo& info, absl::string_view text, absl::string_view rule) {
    std::string line(indent_, ' ');
    if (dash_) line[indent_ - 2] = '-';
    dash_ = false;
    absl::StrAppend(&line, info.key, ":", text.empty() ? "" : " ", text);
    line.resize(std::max(line.size() + 2, kCommentColumn), ' ');
    absl::StrAppend(&line, "# ", info.comment, rule.empty() ? "" : "; ", rule);
    const std::string& usual = defaults_.Of(PathOf(above_, info.key));
    if (!info.required && !usual.empty()) absl::StrAppend(&line, "; default ", usual);
    absl::StrAppend(out_, line, "\n");
  }

  DefaultCollector& defaults_;
  std::string* const out_;
  std::string above_;
  size_t indent_ = 0;
  bool dash_ = false;  // the next key is a list item's first
  bool applies_ = true;
};

}  // namespace

std::string PrintConfig(const Config& config) {
  Config defaults;
  DefaultCollector collector;
  VisitConfig(defaults, collector);
  std::string text = "# The whole configuration as it takes effect; a valid file itself.\n";
  Printer printer(collector, &text);
  Config shown = config;
  VisitConfig(shown, printer);
  return text;
}

}  // namespace halfpage
