;; Reserved bytes of a request that are not 0.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (unreachable))
(data (i32.const 0x4e4) "\01")
