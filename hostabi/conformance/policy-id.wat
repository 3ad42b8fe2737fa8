;; Which policy plays an agent: a number for each.
;; include role_observe
(func $more (param $t i32) (param $env i32)
  (drop (i32.load (call $place (i32.const 6) (local.get $t) (local.get $env)))))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\10\00\00\00\00\00\04\00\09\00\00\00")
