;; RL_STATUS_ARGUMENT says that the arguments are wrong.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (global.set $check (i32.const 42))
  (i32.const -1))
