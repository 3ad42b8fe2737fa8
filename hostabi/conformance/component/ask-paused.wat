;; A request is answered also during a pause.
;; include asking
(global $paused (mut i32) (i32.const 0))
(func (export "rl_pause") (result i32) (global.set $paused (i32.const 1)) (i32.const 0))
(func (export "rl_resume") (result i32) (global.set $paused (i32.const 0)) (i32.const 0))
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (call $same (i32.const 1) (global.get $paused) (i32.const 1))
  (call $echo (local.get $request) (local.get $buf)))
