;; Seeds of levels: one for each environment, of 64 bits.
;; include role_observe
(func $more (param $t i32) (param $env i32)
  (drop (i64.load (call $place (i32.const 6) (local.get $t) (local.get $env)))))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\0f\00\00\00\00\00\05\00\08\00\00\00")
