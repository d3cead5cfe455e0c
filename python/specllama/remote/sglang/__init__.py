"""A target served by an SGLang server (docs/guides/remote-sglang.md).

What this code assumes of SGLang's `/generate` was read in its source, sgl-project/sglang, and tried
against version 0.5.23 on a CPU:

- Request: python/sglang/srt/managers/io_struct.py, GenerateReqInput (at commit 001067f).
- `logprob_start_len`: managers/schedule_batch.py, Req.init_next_round_input: the prefix cache is
  used at most up to this position, so this token and all after it are computed.
- Answer: managers/scheduler_output_processor_mixin.py (at commit 004ec01),
  _process_input_token_logprobs and _process_input_top_logprobs: one entry per token from
  `logprob_start_len` on, the distribution from which that token was to be chosen. The first is
  None, as the position before it is not computed. The distribution after the last token is not
  among these, but the first of the output's. managers/tokenizer_manager.py,
  detokenize_logprob_tokens: [logarithm, id, text], text is None unless `return_text_in_logprobs`.
- Temperature: sampling/sampling_params.py turns 0 into temperature 1 with top_k 1, so that
  layers/sampler.py reports the model's own distribution whatever else is in the batch. The
  input's distributions are never scaled.
- Token ids: `input_ids` are not checked. An id beyond the vocabulary, or a `top_logprobs_num` above
  its size, is an error in the scheduler, which ends the server. `token_ids_logprob` is checked
  before (status 400, "valid range is [0, N)").
- Length: managers/tp_worker.py: max_req_input_len is the length of the shortest refused input.
"""
