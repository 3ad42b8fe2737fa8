;; An answer that is not JSON is none: the asker is told.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (i32.store8 (local.get $buf) (i32.const 123))
  (i32.const 1))
