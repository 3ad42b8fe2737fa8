;; An answer has 122,880 bytes at most.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.eq (i32.load offset=12 (local.get $request)) (i32.const 2)) (then (return (i32.const 122881))))
  (memory.fill (local.get $buf) (i32.const 55) (local.get $cap))
  (i32.store8 (local.get $buf) (i32.const 34))
  (i32.store8 (i32.add (local.get $buf) (i32.const 122879)) (i32.const 34))
  (i32.const 122880))
