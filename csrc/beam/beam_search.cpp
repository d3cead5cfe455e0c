#include "beam/beam_search.h"

#include <algorithm>

#include "device/fit.h"
#include "specllama/error.h"
#include "system/clock.h"
#include "text/text_stream.h"

namespace specllama {

namespace {

// Most levels of lookahead if the planner chooses: further predictions are hardly ever right.
constexpr int kMostPlannedLevels = 16;

// Checks the options; returns the most tokens of a beam.
int settle_max_tokens(const BeamOptions& options, int n_prompt, int n_ctx) {
    check_options(options);
    const int n_room = (n_ctx - n_prompt) / options.n_beams;
    const std::string room = "after the prompt the context has room for " + std::to_string(n_room) +
                             " tokens of each of " + std::to_string(options.n_beams) + " beams";
    if (n_room < 1)
        throw InvalidArgument("A beam needs at least one token, but " + room +
                              "; shorten the prompt, or raise n_ctx.");
    if (!options.max_tokens) return std::min(kDefaultMaxTokens, n_room);
    const int max_tokens = *options.max_tokens;
    if (max_tokens == -1) return n_room;
    if (max_tokens < 1)
        throw InvalidArgument("max_tokens must be 1 or more with n_beams, not " +
                              std::to_string(max_tokens) + ".");
    if (max_tokens > n_room)
        throw InvalidArgument("max_tokens is " + std::to_string(max_tokens) + ", but " + room +
                              "; lower it, or raise n_ctx.");
    return max_tokens;
}

// Successors to keep per node: enough that n_beams of them do not end a text. With stop strings,
// any of them may end it.
int n_successors(const BeamOptions& options, const Vocab& vocab) {
    int n = options.stop.empty() ? options.n_beams : 2 * options.n_beams;
    for (Token token = 0; token < vocab.size(); ++token) n += vocab.is_end(token);
    return std::min(n, vocab.size());
}

// Maximum number of rows of a decode. More would cost memory for their logits and hardly pay; a
// search that needs more decodes in parts.
constexpr int kMostRows = 64;

int most_rows(const BeamOptions& options, const Speculator& speculator, int n_batch) {
    const int n_ahead = speculator.speculates() ? speculator.limits().depth : 0;
    return std::min({options.n_beams * (1 + n_ahead), kMostRows, n_batch});
}

// Plan of the search's own context: with room for all tokens of all beams and for as many wrong
// drafts, but not more than one request has.
ContextPlan own_context(ContextPlan context, const BeamOptions& options, int n_prompt,
                        int max_tokens, bool long_rope) {
    context.n_seq = 1;
    context.n_forks = Branches::n_forks(options.n_beams);
    // A sliding window does not free cells that several sequences share.
    context.whole_window = true;
    // Models with long RoPE rotate positions by the size of the memory, so it must stay the
    // session's.
    if (!long_rope)
        context.n_ctx = std::min(context.n_ctx, n_prompt + 2 * options.n_beams * max_tokens);
    return context;
}

Context open_context(const std::shared_ptr<const Model>& model, const ContextPlan& plan, int n_rows,
                     int n_beams) {
    check_memory(model->header(), model->options(), plan, n_rows,
                 "A search with " + std::to_string(n_beams) + (n_beams == 1 ? " beam" : " beams"),
                 "lower n_beams or max_tokens, or shorten the prompt");
    return {model, plan, n_rows};
}

GenerateOptions own_request(int max_tokens) {
    GenerateOptions request;
    request.max_tokens = max_tokens;
    return request;
}

}  // namespace

BeamSearch::BeamSearch(const std::shared_ptr<const Model>& model, const ContextPlan& context,
                       Speculator& speculator, SequenceId id, TokenSpan prompt,
                       const BeamOptions& options)
    : options_(options),
      max_tokens_(settle_max_tokens(options, static_cast<int>(prompt.size()), context.n_ctx)),
      most_rows_(most_rows(options, speculator, context.n_batch)),
      target_(open_context(model,
                           own_context(context, options, static_cast<int>(prompt.size()),
                                       max_tokens_, model->header().long_rope),
                           most_rows_, options.n_beams)),
      vocab_(target_.model().vocab()),
      speculator_(speculator),
      request_(vocab_, prompt, own_request(max_tokens_), context.n_ctx),
      trie_(n_successors(options, vocab_)),
      hypotheses_(trie_, options, max_tokens_),
      drafter_(speculator.drafters(), trie_, request_, id, options.reference, vocab_),
      batch_(target_.n_batch()) {
    for (const std::string& one : options_.stop)
        longest_stop_ = std::max(longest_stop_, one.size());
}

void BeamSearch::reuse(TokenSpan tokens, std::span<const std::uint8_t> state) {
    const TokenSpan prompt = request_.tokens();
    // The last token must be decoded, because its logits are needed.
    const auto same = std::ranges::mismatch(prompt.first(prompt.size() - 1), tokens).in1;
    const auto n_same = static_cast<int>(same - prompt.begin());
    Memory& memory = target_.memory();
    if (n_same == 0 || static_cast<int>(tokens.size()) > target_.n_ctx() ||
        !memory.load(Branches::kPrompt, state, static_cast<int>(tokens.size())))
        return;
    request_.set_cached(memory.rewind(Branches::kPrompt, n_same));
    request_.stats.reused_tokens = request_.n_cached();
}

void BeamSearch::round() {
    if (!branches_)
        prefill();
    else
        step();
}

// Decodes the next batch of the prompt; after the last one, the search begins.
void BeamSearch::prefill() {
    Stats& stats = request_.stats;
    const Timer timer(stats.seconds.prefill);
    batch_.clear();
    Position position = request_.n_cached();
    int row = 0;
    const TokenSpan pending = request_.pending();
    for (const Token token :
         pending.first(std::min<std::size_t>(pending.size(), target_.n_batch()))) {
        const bool last = position + 1 == request_.n_tokens();
        row = batch_.add(token, position++, Branches::kPrompt, last);
    }
    target_.decode(batch_);
    request_.set_cached(position);
    if (!request_.pending().empty()) return;
    request_.end_prompt();
    ++stats.rounds;
    stats.by_round.push_back({0, 0});
    branches_.emplace(target_.memory(), trie_, request_.n_tokens(), options_.n_beams);
    learn(Trie::kRoot, target_.logits(row));
    advance();
    stats.prefill_generated_tokens = hypotheses_.n_steps();
}

void BeamSearch::learn(NodeId node, std::span<const float> logits) {
    const Timer timer(request_.stats.seconds.choose);
    if (!best_successors(logits, trie_.learn(node)))
        throw DecodeError(
            "The model gave logits that are not numbers (NaN or infinite); the file is damaged, or "
            "its numbers overflow on this device.");
}

// Takes steps while the successors of all running hypotheses are known.
void BeamSearch::advance() {
    const Timer timer(request_.stats.seconds.choose);
    const auto known = [&](const Hypothesis& one) { return trie_.known(one.node); };
    int n_steps = 0;
    while (!hypotheses_.done() && std::ranges::all_of(hypotheses_.running(), known)) {
        hypotheses_.step([&](NodeId node, Token token) { return ends(node, token); });
        count_accepted();
        ++n_steps;
    }
    request_.stats.generated_tokens = hypotheses_.n_steps();
    request_.stats.chosen_tokens = hypotheses_.n_steps();
    const int n_seen = std::min(n_steps, lookahead_.n_levels());
    if (n_seen <= 0 || hypotheses_.done()) return;
    const bool last_is_right =
        n_seen < n_steps || lookahead_.has_foreseen(n_seen, hypotheses_.running());
    lookahead_depth_.learn(n_seen, last_is_right ? n_seen : n_seen - 1);
}

void BeamSearch::count_accepted() {
    for (const Hypothesis& one : hypotheses_.running()) {
        if (!trie_.known(one.node) || ahead_[one.node].round < 0) continue;
        const Ahead& ahead = ahead_[one.node];
        ++request_.stats.accepted;
        ++request_.stats.by_round[ahead.round].accepted;
        ++request_.stats.by_source[static_cast<std::size_t>(ahead.source)].accepted;
    }
}

FinishReason BeamSearch::ends(NodeId node, Token token) {
    if (vocab_.is_end(token)) return FinishReason::stop;
    if (options_.stop.empty()) return FinishReason::none;
    // The end of the text, from the first place at which a stop string that ends in this token may
    // begin.
    tail_.clear();
    vocab_.append_piece(token, tail_);
    const std::size_t n_wanted = tail_.size() + longest_stop_ - 1;
    std::string piece;
    for (; node != Trie::kRoot && tail_.size() < n_wanted; node = trie_.parent(node)) {
        piece.clear();
        vocab_.append_piece(trie_.token(node), piece);
        tail_.insert(0, piece);
    }
    const auto in_tail = [&](const std::string& one) {
        return tail_.find(one) != std::string::npos;
    };
    return std::ranges::any_of(options_.stop, in_tail) ? FinishReason::stop : FinishReason::none;
}

void BeamSearch::step() {
    branches_->begin_round(hypotheses_.running());
    look_ahead();
    const int n_levels = choose_levels();
    lay_out(n_levels);
    Stats& stats = request_.stats;
    const auto n_waited_for = static_cast<int>(lookahead_.unknown(0).size());
    const auto n_rows = static_cast<int>(rows_.size());
    const int n_drafted = n_rows - n_waited_for;
    stats.drafted += n_drafted;
    ahead_.resize(trie_.size());
    for (int i = 0; i < n_rows; ++i) {
        const auto [node, _, source] = rows_[i];
        ahead_[node] = {};
        if (i < n_waited_for) continue;
        ahead_[node] = {static_cast<int>(stats.by_round.size()), source};
        ++stats.by_source[static_cast<std::size_t>(source)].drafted;
    }
    for (int first = 0; first < n_rows; first += most_rows_) {
        stats.by_round.push_back({first == 0 ? n_drafted : 0, 0});
        decode(first, std::min(first + most_rows_, n_rows));
    }
    advance();
}

void BeamSearch::look_ahead() {
    const Timer timer(request_.stats.seconds.draft);
    drafter_.follow(hypotheses_.running());
    lookahead_.run(
        trie_, hypotheses_.running(), options_.n_beams, most_levels(),
        [&](NodeId node, int n, std::vector<Lookahead::Candidate>& tokens) {
            drafter_.propose(node, n, tokens);
        },
        [&](Token token) { return vocab_.is_end(token); });
}

// Most levels of lookahead. Texts of full length need not be decoded.
int BeamSearch::most_levels() const {
    if (!speculator_.speculates() || drafter_.none()) return 0;
    const int n_most =
        speculator_.planner() != nullptr ? kMostPlannedLevels : speculator_.limits().depth;
    return std::min(n_most, max_tokens_ - 1 - hypotheses_.n_steps());
}

// Maximum number of rows to decode ahead: enough cells must stay free for the rest of the search.
int BeamSearch::n_affordable() const {
    const int n_wanted = options_.n_beams * (max_tokens_ - hypotheses_.n_steps());
    return target_.n_ctx() - request_.n_tokens() - branches_->n_cells() - n_wanted;
}

int BeamSearch::choose_levels() {
    const int n_waited_for = static_cast<int>(lookahead_.unknown(0).size());
    const int n_most = std::min(most_rows_, n_waited_for + std::max(n_affordable(), 0));
    n_rows_.assign(1, n_waited_for);
    for (int level = 1; level <= lookahead_.n_levels(); ++level) {
        const int n = n_rows_.back() + static_cast<int>(lookahead_.unknown(level).size());
        if (n > n_most) break;
        n_rows_.push_back(n);
    }
    if (speculator_.planner() == nullptr) return static_cast<int>(n_rows_.size()) - 1;
    const int n_context = request_.n_tokens() + hypotheses_.n_steps();
    const CostCurve& cost = speculator_.planner()->cost();
    return lookahead_depth_.choose(n_rows_, [&](int n) { return cost.seconds(n, n_context); });
}

// Makes a row of each unknown node of the levels, with the sequence to decode it in. Nodes without
// a free sequence are omitted, with all their descendants.
void BeamSearch::lay_out(int n_levels) {
    rows_.clear();
    for (int level = 0; level <= n_levels; ++level)
        for (const auto& [node, source] : lookahead_.unknown(level)) {
            const NodeId parent = trie_.parent(node);
            SequenceId sequence = Branches::kNone;
            if (branches_->holds(parent))
                sequence = branches_->take(parent, level == 0);
            else if (const auto row = std::ranges::find(rows_, parent, &Row::node);
                     row != rows_.end())
                sequence = row->sequence;
            if (sequence != Branches::kNone) rows_.push_back({node, sequence, source});
        }
}

void BeamSearch::decode(std::size_t first, std::size_t last) {
    target_.adapt_threads();
    const auto rows = std::span(rows_).subspan(first, last - first);
    batch_.clear();
    for (const Row& row : rows) {
        const Position position = request_.n_tokens() + trie_.depth(row.node) - 1;
        batch_.add(trie_.token(row.node), position, row.sequence, true);
    }
    const Stopwatch watch;
    target_.decode(batch_);
    const double seconds = watch.seconds();
    Stats& stats = request_.stats;
    ++stats.rounds;
    stats.seconds.verify += seconds;
    stats.n_threads = target_.n_threads();
    speculator_.observe_decode(
        {batch_.size(), request_.n_tokens() + hypotheses_.n_steps(), seconds, target_.n_threads()});
    for (int i = 0; i < std::ssize(rows); ++i) {
        branches_->add(rows[i].sequence, rows[i].node);
        learn(rows[i].node, target_.logits(i));
    }
}

std::vector<Beam> BeamSearch::beams() const {
    std::vector<Beam> found;
    std::vector<Token> path;
    for (const Ended& ended : hypotheses_.ended()) {
        path.clear();
        trie_.append_path(Trie::kRoot, ended.node, path);
        if (vocab_.is_end(path.back())) path.pop_back();
        TextStream text(options_.stop);
        for (const Token token : path)
            text.push(token, false, {},
                      [&](std::string& bytes) { vocab_.append_piece(token, bytes); });
        path.resize(text.n_kept());
        found.push_back({text.text(), path, ended.logprob, ended.score, ended.reason});
    }
    return found;
}

}  // namespace specllama
