;; A guest has as many leases at once as the user says, 64, and no more: one more is a fault.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $i i32)
  (local.set $token (i32.load (local.get $message)))
  (loop $next
    (call $same (i32.const 1) (call $lease (local.get $token)) (i32.const 0))
    (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 64))))
  (drop (call $note (i64.const 64)))
  (drop (call $lease (local.get $token)))
  (drop (call $note (i64.const 65)))
  (i32.const 0))
