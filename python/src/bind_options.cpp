#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/native_enum.h>

#include "bind.h"
#include "specllama/beam.h"
#include "specllama/generate_options.h"
#include "specllama/session_options.h"
#include "token_array.h"

namespace specllama {

namespace {

// A line of a table of options, with the properties of its field's type.
struct Option {
    OptionInfo info;
    std::string kind;
    bool optional;     // None is allowed: the option is not set
    py::object unset;  // the default value
    std::string by_default;
};

py::tuple words(const char* text) {
    std::istringstream stream(text);
    py::list all;
    for (std::string word; stream >> word;) all.append(word);
    return py::tuple(all);
}

template <typename Value>
std::string kind_of() {
    using std::is_same_v;
    if constexpr (is_optional<Value>) return kind_of<typename Value::value_type>();
    if constexpr (is_same_v<Value, bool>) return "flag";
    if constexpr (std::is_integral_v<Value>) return "integer";
    if constexpr (std::is_floating_point_v<Value>) return "number";
    if constexpr (is_same_v<Value, std::string>) return "text";
    if constexpr (is_same_v<Value, Switch>) return "switch";
    if constexpr (std::is_enum_v<Value>) return "choice";
    if constexpr (is_same_v<Value, std::vector<std::string>>) return "texts";
    if constexpr (is_same_v<Value, std::vector<float>>) return "numbers";
    return "";
}

template <typename Options>
std::vector<Option> listed() {
    std::vector<Option> all;
    const Options defaults;
    visit_options<Options>([&](const OptionInfo& info, auto get) {
        const auto& value = get(defaults);
        using Value = std::remove_cvref_t<decltype(value)>;
        all.push_back({info, kind_of<Value>(), is_optional<Value> || *info.unset != '\0',
                       py::cast(value), default_text(info, value)});
    });
    return all;
}

// Sets the option of this name. Returns false if there is none.
template <typename Options>
bool set(Options& options, const std::string& name, const py::handle& value) {
    bool found = false;
    if constexpr (std::is_same_v<Options, GenerateOptions>) {
        if (name == "sampling") {
            options.sampling = value.cast<SamplingOptions>();
            return true;
        }
    }
    visit_options<Options>([&](const OptionInfo& info, auto get) {
        if (name != info.name) return;
        found = true;
        auto& field = get(options);
        using Field = std::remove_cvref_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, std::vector<Token>>)
            field = value.cast<Tokens>().to_vector();
        else
            field = value.cast<Field>();
    });
    return found;
}

// Binds a struct of options. Python creates it with keyword arguments and reads its options as
// attributes, both by the names in the table.
template <typename Options>
void bind_struct(py::module_& m, const char* struct_name) {
    const auto make = [=](const py::kwargs& values) {
        Options options;
        for (const std::pair<py::handle, py::handle> given : values) {
            const std::string name = py::str(given.first);
            bool known = false;
            try {
                known = set(options, name, given.second);
            } catch (const py::cast_error&) {
                const std::string value = py::repr(given.second);
                throw py::type_error(name + " cannot be " + value + ".");
            }
            if (!known) throw py::type_error(std::string(struct_name) + " has no " + name + ".");
        }
        return options;
    };
    const auto get = [](const Options& options, const std::string& name) {
        py::object found;
        if constexpr (std::is_same_v<Options, GenerateOptions>)
            if (name == "sampling") return py::cast(options.sampling);
        visit_options<Options>([&](const OptionInfo& info, auto field) {
            if (name == info.name) found = py::cast(field(options));
        });
        if (!found) throw py::attribute_error(name);
        return found;
    };
    py::class_<Options>(m, struct_name).def(py::init(make)).def("__getattr__", get);
}

}  // namespace

void bind_options(py::module_& m) {
    py::native_enum<Switch>(m, "Switch", "enum.Enum", "On, off, or chosen automatically.")
        .value("automatic", Switch::automatic)
        .value("on", Switch::on)
        .value("off", Switch::off)
        .finalize();
    py::native_enum<AcceptanceRule>(m, "AcceptanceRule", "enum.Enum",
                                    "The rule that accepts draft tokens.")
        .value("coupled", AcceptanceRule::coupled)
        .value("rejection", AcceptanceRule::rejection)
        .finalize();
    py::native_enum<SpecType>(m, "SpecType", "enum.Enum", "The drafters in use.")
        .value("auto", SpecType::automatic)
        .value("none", SpecType::none)
        .value("model", SpecType::model)
        .value("ngram", SpecType::ngram)
        .finalize();
    py::native_enum<GrammarSyntax>(m, "GrammarSyntax", "enum.Enum", "The syntax of a grammar.")
        .value("gbnf", GrammarSyntax::gbnf)
        .value("lark", GrammarSyntax::lark)
        .value("regex", GrammarSyntax::regex)
        .value("json_schema", GrammarSyntax::json_schema)
        .finalize();
    py::native_enum<EarlyStopping>(m, "EarlyStopping", "enum.Enum", "When a beam search ends.")
        .value("no", EarlyStopping::no)
        .value("yes", EarlyStopping::yes)
        .value("never", EarlyStopping::never)
        .finalize();
    py::class_<LoraAdapter>(m, "LoraAdapter")
        .def(py::init<std::string, float>(), py::kw_only(), py::arg("path"), py::arg("scale"))
        .def_readonly("path", &LoraAdapter::path)
        .def_readonly("scale", &LoraAdapter::scale);
    py::class_<RequestDraft>(m, "RequestDraft")
        .def(py::init([](const Tokens& tokens,
                         std::vector<std::pair<int, std::vector<Token>>> branches) {
                 return RequestDraft{tokens.to_vector(), std::move(branches)};
             }),
             py::kw_only(), py::arg("tokens"), py::arg("branches"))
        .def_readonly("tokens", &RequestDraft::tokens)
        .def_readonly("branches", &RequestDraft::branches);

    py::class_<Option> option(m, "Option", "A line of the table of options; see option.h.");
    const auto text = [&](const char* name, auto member) {
        option.def_property_readonly(name, [=](const Option& one) { return one.info.*member; });
    };
    const auto list = [&](const char* name, auto member) {
        option.def_property_readonly(name,
                                     [=](const Option& one) { return words(one.info.*member); });
    };
    text("name", &OptionInfo::name);
    text("help", &OptionInfo::help);
    text("low", &OptionInfo::low);
    text("high", &OptionInfo::high);
    text("above_low", &OptionInfo::above_low);
    text("special", &OptionInfo::special);
    text("value", &OptionInfo::value);
    text("field", &OptionInfo::field);
    list("choices", &OptionInfo::choices);
    list("words", &OptionInfo::words);
    list("flags", &OptionInfo::flags);
    list("aliases", &OptionInfo::aliases);
    option.def_readonly("kind", &Option::kind)
        .def_readonly("optional", &Option::optional)
        .def_readonly("default", &Option::unset)
        .def_readonly("by_default", &Option::by_default)
        .def_property_readonly("range", [](const Option& one) { return range_text(one.info); });
    m.def("generate_options", &listed<GenerateOptions>);
    m.def("session_options", &listed<SessionOptions>);
    m.def("ngram_options", &listed<NGramOptions>);
    m.def("sampling_options", &listed<SamplingOptions>);
    m.def("beam_options", &listed<BeamOptions>);

    bind_struct<NGramOptions>(m, "NGramOptions");
    bind_struct<SessionOptions>(m, "SessionOptions");
    bind_struct<SamplingOptions>(m, "SamplingOptions");
    bind_struct<BeamOptions>(m, "BeamOptions");
    bind_struct<GenerateOptions>(m, "GenerateOptions");
}

}  // namespace specllama
