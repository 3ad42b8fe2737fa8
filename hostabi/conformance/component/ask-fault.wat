;; A fault costs the request its answer; the guest continues from the state that was saved last.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.eq (i32.load offset=12 (local.get $request)) (i32.const 2)) (then (global.set $messages (i32.const 9)) (call $same (i32.const 42) (i32.const 0) (i32.const 1))))
  (call $same (i32.const 1) (global.get $messages) (i32.const 0))
  (call $echo (local.get $request) (local.get $buf)))
