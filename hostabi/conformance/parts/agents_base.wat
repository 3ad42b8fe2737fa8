;; All of the guest with two agents but its rl_step: two agents in each environment, which do and see the same: a group record of 128 bytes, then the tensors, all of them
;; per agent. Who steps writes the first agent's rows and copies them to the second. The action of the second is never read. A case
;; says with the global $acts whether it acts; -1: there is no tensor that says so.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
;; include place
;; include advance
(data (i32.const 0x410) "\04")                                                  ;; needs agents
(data (i32.const 0x41c) "\80\00")                                               ;; group_bytes
(data (i32.const 0x424) "\01")                                                  ;; groups
(data (i32.const 0x480) "\01\00\00\00\02\00\00\00\00\00\00\00")                 ;; a group, conformance, of 2
(data (i32.const 0x500) "\01\00\00\00\00\00\04\00\03\00\00\00\00\00\00\00")     ;; action
(data (i32.const 0x52c) "\02\00\00\00")                                         ;;   of 2 values
(data (i32.const 0x580) "\02\00\00\00\00\00\08\01\c5\00\00\00\02\00\00\00")     ;; observation
(data (i32.const 0x600) "\03\00\00\00\00\00\08\00\03\00\00\00")                 ;; reward
(data (i32.const 0x680) "\04\00\00\00\00\00\01\00\03\00\00\00")                 ;; terminated
(data (i32.const 0x700) "\05\00\00\00\00\00\01\00\03\00\00\00\00\00\00\00")     ;; truncated
(data (i32.const 0x780) "\07\00\00\00\00\00\08\01\c9\00\00\00\02\00\00\00")     ;; final observation
(data (i32.const 0x800) "\08\00\00\00\00\00\01\00\05\00\00\00")                 ;; active, if it is counted
(func $next (param $k i32) (result i32) ;; how far the second agent's row is from the first's
  (i32.load offset=12 (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48)))))
(func $same (param $k i32) (param $at i32) (param $size i32)
  (memory.copy (i32.add (local.get $at) (call $next (local.get $k))) (local.get $at) (local.get $size)))
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $at i32)
  (local.set $at (call $place (local.get $k) (local.get $t) (local.get $env)))
  (f32.store (local.get $at) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
  (call $same (local.get $k) (local.get $at) (i32.const 4))
  (local.set $at (i32.add (local.get $at) (call $apart (local.get $k))))
  (f32.store (local.get $at) (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))))
  (call $same (local.get $k) (local.get $at) (i32.const 4))
  (if (i32.and (i32.eq (local.get $k) (i32.const 1)) (i32.ge_s (global.get $acts) (i32.const 0)))
    (then
      (local.set $at (call $place (i32.const 6) (local.get $t) (local.get $env)))
      (i32.store8 (local.get $at) (i32.const 1))
      (i32.store8 (i32.add (local.get $at) (call $next (i32.const 6))) (global.get $acts)))))
