;; Every role that a host may not run, optional: it leaves unbound what it does not run, whatever that is.
;; include role_state
(func $more (param $t i32) (param $env i32)
  (if (call $bound (i32.const 8))
    (then
      (f32.store (call $place (i32.const 8) (local.get $t) (local.get $env)) (f32.const 0.5))))
  (if (call $bound (i32.const 9))
    (then
      (f32.store (call $place (i32.const 9) (local.get $t) (local.get $env)) (f32.load (call $place (i32.const 2) (local.get $t) (local.get $env))))))
  (if (call $bound (i32.const 13))
    (then
      (i32.store8 (call $place (i32.const 13) (local.get $t) (local.get $env)) (i32.or (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env))) (i32.shl (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env))) (i32.const 1)))))))
(data (i32.const 0x420) "\0e")
(data (i32.const 0x780) "\0a\00\00\00\00\00\08\01\d4\00\00\00\02\00\00\00")
(data (i32.const 0x800) "\0b\00\00\00\00\00\08\01\d8\00\00\00\02\00\00\00")
(data (i32.const 0x880) "\0c\00\00\00\00\00\08\00\12\00\00\00")
(data (i32.const 0x900) "\0d\00\00\00\00\00\08\00\12\00\00\00")
(data (i32.const 0x980) "\0e\00\00\00\00\00\08\00\d8\00\00\00")
(data (i32.const 0xa00) "\0f\00\00\00\00\00\05\00\18\00\00\00")
(data (i32.const 0xa80) "\10\00\00\00\00\00\04\00\19\00\00\00")
(data (i32.const 0xb00) "\11\00\00\00\00\00\01\00\12\00\00\00")
