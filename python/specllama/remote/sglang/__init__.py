"""A target served by an SGLang server (docs/guides/remote-sglang.md).

This code relies on the following properties of SGLang's `/generate`. They were read in its source,
sgl-project/sglang, and tested with version 0.5.23 on a CPU:

- Request: python/sglang/srt/managers/io_struct.py, GenerateReqInput (at commit 001067f).
- `logprob_start_len`: managers/schedule_batch.py, Req.init_next_round_input: the prefix cache is
  used at most up to this position, so this token and all after it are computed.
- Answer: managers/scheduler_output_processor_mixin.py (at commit 004ec01),
  _process_input_token_logprobs and _process_input_top_logprobs: one entry per token from
  `logprob_start_len` on, the distribution from which this token is chosen. The first entry is None,
  because the position before it is not computed. The distribution after the last token is not one
  of these, but the first of the output. managers/tokenizer_manager.py, detokenize_logprob_tokens:
  [logarithm, id, text]; text is None unless `return_text_in_logprobs`.
- Temperature: sampling/sampling_params.py changes 0 to temperature 1 with top_k 1, so that
  layers/sampler.py reports the model's own distribution, whatever else is in the batch. The
  distributions of the input are never scaled.
- Token ids: `input_ids` are not checked. An id outside the vocabulary, or a `top_logprobs_num`
  larger than it, is an error in the scheduler, which ends the server. `token_ids_logprob` is
  checked before (status 400, "valid range is [0, N)").
- Length: managers/tp_worker.py: max_req_input_len is the length of the shortest refused input.
"""
