;; No import calls the guest: neither rl_alloc nor another slot.
;; include imports
;; include memory
;; include marker
;; include check
;; include configure
;; include manifest
;; include start
(global $inside (mut i32) (i32.const 0))
(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32)
  (call $same (i32.const 1) (global.get $inside) (i32.const 0))
  (global.set $heap (i32.and (i32.add (global.get $heap) (i32.const 0xffff)) (i32.const -0x10000)))
  (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))
  (global.get $heap) (global.set $heap (i32.add (global.get $heap) (local.get $size))))
(func (export "rl_free") (param i32 i32) (call $same (i32.const 2) (global.get $inside) (i32.const 0)))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 3) (global.get $inside) (i32.const 0))
  (global.set $inside (i32.const 1))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (drop (call $note (i64.const 1)))
  (drop (call $lease (local.get $token)))
  (drop (call $release (local.get $token)))
  (drop (call $column (local.get $token) (i32.const 0x3400) (i32.const 6) (i32.const 0) (i32.const 0x3200)))
  (drop (call $cancel (call $timer (i64.const 0) (i64.const 0))))
  (global.set $inside (i32.const 0))
  (i32.const 0))
