;; Random bytes are those of the run: the same in each run of the same seed.
;; include random
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $random_get (i32.const 0x3500) (i32.const 8)) (i32.const 0))
  (drop (call $note (i64.load (i32.const 0x3500))))
  (i32.const 0))
