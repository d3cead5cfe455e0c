"""A target that an SGLang server has (docs/remote-sglang.md).

What is known here of SGLang's `/generate` is from its source, sgl-project/sglang, and was not tried
against a server:

- Request: python/sglang/srt/managers/io_struct.py, GenerateReqInput (at commit 001067f).
- `logprob_start_len`: managers/schedule_batch.py, Req.init_next_round_input: the cache of prefixes
  is used up to there at most, so that this token and what follows it is computed.
- Answer: managers/scheduler_output_processor_mixin.py (at commit 004ec01),
  _process_input_token_logprobs and _process_input_top_logprobs: one entry for each token from
  `logprob_start_len` on, what the token was to be chosen from; the first is None, since what comes
  before it is not computed; and what would come behind the last is not among these but the first
  of the output's. managers/tokenizer_manager.py, detokenize_logprob_tokens: [logarithm, id, text],
  the text None unless `return_text_in_logprobs`.
- Temperature: sampling/sampling_params.py makes 0 a temperature of 1 with top_k 1, so that
  layers/sampler.py tells of the model's own distribution whatever else is in the batch. The input's
  is never scaled.
- Length: managers/tp_worker.py: max_req_input_len is the shortest input that is refused.
"""
