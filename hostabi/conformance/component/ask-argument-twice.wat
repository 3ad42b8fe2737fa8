;; Two arguments of one name.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (unreachable))
(data (i32.const 0x5a6) "n text\00")
