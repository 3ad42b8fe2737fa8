;; A request is answered once, by its block, which cannot be leased; all of the answer but the version is the host's, and what a granted column holds then is in the block.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (local.set $at (i32.load offset=4 (local.get $message)))
  (call $same (i32.const 1) (i32.load8_u offset=41 (local.get $at)) (i32.const 1))
  (f32.store (i32.load (local.get $at)) (f32.const 99))
  (call $same (i32.const 2) (call $lease (local.get $token)) (i32.const -3))
  (i32.store (local.get $message) (i32.const 0))
  (call $same (i32.const 3) (call $emit (i32.const 0) (local.get $message)) (i32.const -3)) ;; of no block
  (i32.store (local.get $message) (local.get $token))
  (i32.store offset=12 (local.get $message) (i32.const 127)) ;; its split, and what it says
  (i64.store offset=24 (local.get $message) (i64.const 127))
  (i32.store16 offset=40 (local.get $message) (i32.const 127))
  (call $same (i32.const 4) (call $emit (i32.const 0) (local.get $message)) (i32.const 0))
  (call $same (i32.const 5) (call $emit (i32.const 0) (local.get $message)) (i32.const -3)) ;; once more
  (f32.store (i32.load (local.get $at)) (f32.const 98)) ;; which goes nowhere
  (i32.const 0))
(data (i32.const 0x690) "reward_request\00shaped_rewards\00shaped_reward")
(data (i32.const 0x464) "\ef") ;; the payload of the signal out
(data (i32.const 0x504) "\e0") ;; the payload of the slot written
(data (i32.const 0x59c) "\fe") ;; the column that it writes
