;; rl_request gets the index of its request and the arguments as JSON, and has room for the longest answer.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (call $same (i32.const 1) (i32.load (local.get $request)) (i32.const 32))
  (call $same (i32.const 2) (i32.load offset=4 (local.get $request)) (global.get $messages))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 3) (i32.add (i32.load offset=8 (local.get $request)) (i32.load offset=12 (local.get $request))) (local.get $len))
  (call $same (i32.const 4) (local.get $cap) (i32.const 122880))
  (call $same (i32.const 5) (i32.and (local.get $request) (i32.const 7)) (i32.const 0))
  (call $echo (local.get $request) (local.get $buf)))
