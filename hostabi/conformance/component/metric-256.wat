;; At most 256 metrics.
;; include granted
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (loop $each
    (i32.store16 (i32.const 0x3600) (i32.add (i32.const 0x6161) (i32.add (i32.rem_u (local.get $at) (i32.const 16)) (i32.shl (i32.div_u (local.get $at) (i32.const 16)) (i32.const 8)))))
    (call $same (i32.const 1) (call $declare (i32.const 2) (i32.const 0x3600) (i32.const 2)) (local.get $at))
    (br_if $each (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 256))))
  (call $same (i32.const 2) (call $declare (i32.const 2) (i32.const 0x3400) (i32.const 6)) (i32.const -2))
  (i32.const 0))
