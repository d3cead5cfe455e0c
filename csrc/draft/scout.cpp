#include "draft/scout.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace specllama {

namespace {

using Clock = std::chrono::steady_clock;

// A habit that is broken more often than not is not followed.
constexpr float kLeastConfidence = 0.5F;
// Thousands of times as long as a usual step.
constexpr std::chrono::milliseconds kLongestLook{20};
// Most bytes of a text that are held before its beginning is forgotten.
constexpr std::size_t kLongestText = 1024;

// Sets a flag if its scope takes too long.
class Watch {
 public:
    explicit Watch(bool& too_long) : too_long_(too_long) {}
    ~Watch() { too_long_ |= Clock::now() - started_ > kLongestLook; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

 private:
    bool& too_long_;
    Clock::time_point started_ = Clock::now();
};

// More than kFew letters, and more than kFew digits: in a free text most of either kind may come.
constexpr std::string_view kTelling = "aeost01234";

// Some bytes that begin characters beyond ASCII: a mask that allows one of these allows most.
constexpr std::string_view kLeads = "\xC3\xD0\xE2\xE4\xF0";

bool is_in(std::string_view bytes, int byte) {
    return bytes.find(static_cast<char>(byte)) != std::string_view::npos;
}

// In the order of asking: 0, what shows soonest that a text is free; 1, what may show it as well;
// 2, what else begins a character; 3, the rest, which is asked about only if none of the others may
// come.
std::size_t group_of(int byte) {
    if (is_in(kTelling, byte)) return 0;
    if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9')) return 1;
    const bool is_blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    const bool is_mark = byte > ' ' && byte < 0x7F;
    return is_blank || is_mark || is_in(kLeads, byte) ? 2 : 3;
}

}  // namespace

Scout::Scout(const ByteTokens& tokens, Habits& habits) : tokens_(tokens), habits_(habits) {
    for (int byte = 0; byte < 256; ++byte)
        if (tokens.of[byte] != kNoToken) questions_[group_of(byte)].push_back(tokens.of[byte]);
    if (tokens.end != kNoToken) questions_[2].push_back(tokens.end);
}

void Scout::enter(std::unique_ptr<Mask> mask, std::string_view text) {
    mask_ = std::move(mask);
    text_ = text;
    n_text_ = text.size();
    confidence_.clear();
    places_.clear();
    has_asked_ = false;
}

bool Scout::follow(Token token, std::string_view bytes) {
    if (n_text_ > kLongestText) {
        text_.erase(0, n_text_ - Habits::kReach);
        n_text_ = Habits::kReach;
    }
    const std::size_t n = std::min(bytes.size(), confidence_.size());
    for (std::size_t i = 0; i < n; ++i) {
        if (places_[i]) habits_.learn(*places_[i], bytes[i]);
        if (bytes[i] != text_[n_text_ + i]) return false;
    }
    n_text_ += n;
    confidence_.erase(confidence_.begin(), confidence_.begin() + static_cast<std::ptrdiff_t>(n));
    places_.erase(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(n));
    bytes.remove_prefix(n);
    if (n > 0 && bytes.empty()) return true;
    if (!confidence_.empty()) return false;  // a token without bytes
    if (n == 0) return accept(token, bytes);
    return std::ranges::all_of(bytes, [&](const char& byte) {
        return accept(tokens_.of[static_cast<unsigned char>(byte)], {&byte, 1});
    });
}

// The text goes on after everything that was foreseen.
bool Scout::accept(Token token, std::string_view bytes) {
    const Watch watch(tired_);
    if (token == kNoToken || !mask_->allows(token)) return false;
    if (!bytes.empty() && is_habitual()) habits_.learn(Habits::place(text_, left_), bytes[0]);
    mask_->accept(token);
    text_ += bytes;
    n_text_ = text_.size();
    has_asked_ = false;
    return true;
}

void Scout::look(std::size_t n_most) {
    while (!tired_ && confidence_.size() < n_most && foresee_next()) {
    }
}

// Foresees one more byte; returns false if none can be foreseen.
bool Scout::foresee_next() {
    const Watch watch(tired_);
    if (!has_asked_) ask();
    if (left_.empty() || left_.size() > kFew) return false;
    Token token = left_[0];
    float confidence = 1;
    std::optional<Habits::Place> place;
    if (is_habitual()) {
        place = Habits::place(text_, left_);
        const Habits::Habit* habit = habits_.find(*place);
        if (habit == nullptr || habit->confidence() < kLeastConfidence) return false;
        token = tokens_.of[static_cast<unsigned char>(habit->byte)];
        confidence = habit->confidence();
    }
    if (token == tokens_.end || std::ranges::find(left_, token) == left_.end()) return false;
    mask_->accept(token);
    text_ += static_cast<char>(byte_of(token));
    confidence_.push_back(confidence);
    places_.push_back(place);
    has_asked_ = false;
    return true;
}

bool Scout::seems_certain() const {
    if (tired_) return false;
    if (confidence_.empty()) return has_asked_ && left_.size() == 1 && left_[0] == tokens_.end;
    const auto first = static_cast<unsigned char>(bytes()[0]);
    if (confidence_[0] < 1 || !tokens_.is_one(first)) return false;
    if (confidence_.size() > 1)
        return confidence_[1] == 1 &&
               !tokens_.begins(first, static_cast<unsigned char>(bytes()[1]));
    return has_asked_ && left_.size() <= kFew && std::ranges::none_of(left_, [&](Token token) {
               return token != tokens_.end && tokens_.begins(first, byte_of(token));
           });
}

unsigned char Scout::byte_of(Token token) const {
    return static_cast<unsigned char>(std::ranges::find(tokens_.of, token) - tokens_.of.begin());
}

void Scout::ask() {
    left_.clear();
    for (const std::vector<Token>& some : questions_) {
        const std::size_t n = left_.size();
        if (&some == &questions_.back() && n > 0) break;
        left_.insert(left_.end(), some.begin(), some.end());
        left_.resize(n + mask_->keep_allowed(std::span(left_).subspan(n)));
        if (left_.size() > kFew) break;
    }
    has_asked_ = true;
}

}  // namespace specllama
