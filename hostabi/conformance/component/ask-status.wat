;; A negative status is the request's error, with the guest's text; the component continues.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (global.set $check (i32.const 42))
  (if (i32.eq (i32.load offset=12 (local.get $request)) (i32.const 2)) (then (return (i32.const -128))))
  (call $echo (local.get $request) (local.get $buf)))
