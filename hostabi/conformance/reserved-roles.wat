;; Roles whose numbers are reserved, neither optional nor critical: bound to memory that takes every write, as any unknown role.
;; include role_state
(func $more (param $t i32) (param $env i32)
  (f32.store (call $place (i32.const 8) (local.get $t) (local.get $env)) (f32.load (call $place (i32.const 2) (local.get $t) (local.get $env))))
  (drop (i64.load (call $place (i32.const 9) (local.get $t) (local.get $env))))
  (drop (i32.load (call $place (i32.const 10) (local.get $t) (local.get $env))))
  (i32.store8 (call $place (i32.const 11) (local.get $t) (local.get $env)) (i32.const 1)))
(data (i32.const 0x420) "\0c")
(data (i32.const 0x780) "\0a\00\00\00\00\00\08\01\c4\00\00\00\02\00\00\00")
(data (i32.const 0x800) "\0b\00\00\00\00\00\08\01\c8\00\00\00\02\00\00\00")
(data (i32.const 0x880) "\0d\00\00\00\00\00\08\00\02\00\00\00")
(data (i32.const 0x900) "\0f\00\00\00\00\00\05\00\08\00\00\00")
(data (i32.const 0x980) "\10\00\00\00\00\00\04\00\09\00\00\00")
(data (i32.const 0xa00) "\11\00\00\00\00\00\01\00\02\00\00\00")
