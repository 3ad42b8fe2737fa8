;; Element (t, env) of a column lies where its binding says.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $at (i32.load offset=4 (local.get $message)))
  (call $same (i32.const 1) (i32.load offset=20 (local.get $at)) (i32.const 2)) ;; rows
  (call $same (i32.const 2) (i32.load offset=28 (local.get $at)) (i32.const 3)) ;; envs
  (call $same (i32.const 3) (i32.load offset=32 (local.get $at)) (i32.const 1)) ;; agents
  (call $same (i32.const 4) (i32.load offset=36 (local.get $at)) (i32.const 1)) ;; elems
  (call $same (i32.const 5) (i32.load8_u offset=40 (local.get $at)) (i32.const 8))
  (call $same (i32.const 6) (i32.load8_u offset=41 (local.get $at)) (i32.const 0)) ;; writable
  (call $same (i32.const 7) (i32.load16_u offset=42 (local.get $at)) (i32.const 0))
  (call $same (i32.const 8) (i32.rem_u (i32.load (local.get $at)) (i32.load offset=24 (local.get $at))) (i32.const 0)) ;; row_align
  ;; the reward of step 1 of the last environment is 12
  (call $same (i32.const 9) (i32.trunc_f32_s (f32.load (i32.add (i32.load (local.get $at))
    (i32.add (i32.load offset=4 (local.get $at)) (i32.mul (i32.const 2) (i32.load offset=8 (local.get $at))))))) (i32.const 12))
  (call $same (i32.const 10) (i32.load offset=84 (local.get $at)) (i32.const 3)) ;; obs has T+1 rows
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
