;; Records of requests that are shorter than version 1.1 has them.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (unreachable))
(data (i32.const 0x444) "\14")
