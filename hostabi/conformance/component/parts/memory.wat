;; The manifest lies at 0x400, messages and bindings of the guest's own from 0x3000 on, names at 0x3400. What it gives to the host begins
;; at 0x10000.
(memory (export "memory") 4)
(global $heap (mut i32) (i32.const 0x10000))
(global $check (mut i32) (i32.const 0))
(global $messages (mut i32) (i32.const 0)) ;; that have come
(data (i32.const 0x3400) "reward")
(data (i32.const 0x3410) "absent")
(data (i32.const 0x3420) "check 00")
