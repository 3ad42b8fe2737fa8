;; A host refuses an observation that is NaN, of whichever group and agent.
;; include memory
;; include head
;; include alloc
;; include create
;; include bind
;; include reset
;; include place
;; include vector
;; include episode
;; include loop_more
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
(func $agent (param $k i32) (param $t i32) (param $env i32) (param $agent i32) (result i32) ;; of the second group: where its row begins
  (i32.add (call $place (local.get $k) (local.get $t) (local.get $env))
    (i32.mul (local.get $agent) (i32.load offset=12 (i32.add (i32.const 0x2000) (i32.mul (local.get $k) (i32.const 48)))))))
(func $act (param $t i32) (param $env i32) (result i32)
  (local $all i32) (local $agent i32) (local $action i32)
  (local.set $all (i32.load (call $place (i32.const 0) (local.get $t) (local.get $env))))
  (if (i32.gt_u (local.get $all) (i32.const 1)) (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
  (loop $next
    (local.set $action (i32.load (call $agent (i32.const 6) (local.get $t) (local.get $env) (local.get $agent))))
    (if (i32.gt_u (local.get $action) (i32.const 2)) (then (return (i32.const -7))))
    (local.set $all (i32.and (local.get $all) (i32.eq (local.get $action) (i32.const 2))))
    (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $agent) (i32.const 2))))
  (local.get $all))
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $agent i32) (local $at i32) (local $apart i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (local.set $k (i32.add (local.get $k) (i32.const 6)))
  (local.set $apart (call $apart (local.get $k)))
  (loop $next
    (local.set $at (call $agent (local.get $k) (local.get $t) (local.get $env) (local.get $agent)))
    (f32.store (local.get $at) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
    (f32.store (i32.add (local.get $at) (local.get $apart)) (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))))
    (f32.store (i32.add (local.get $at) (i32.shl (local.get $apart) (i32.const 1))) (select (f32.const nan) (f32.const 0) (local.get $agent)))
    (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $agent) (i32.const 2)))))
(func $more (param $t i32) (param $env i32)
  (local $agent i32)
  (loop $next
    (f32.store (call $agent (i32.const 8) (local.get $t) (local.get $env) (local.get $agent)) (f32.load (call $place (i32.const 2) (local.get $t) (local.get $env))))
    (i32.store8 (call $agent (i32.const 9) (local.get $t) (local.get $env) (local.get $agent)) (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env))))
    (i32.store8 (call $agent (i32.const 10) (local.get $t) (local.get $env) (local.get $agent)) (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env))))
    (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $agent) (i32.const 2)))))
(data (i32.const 0x408) "\01")                                                  ;; any strides
(data (i32.const 0x410) "\04")                                                  ;; needs agents
(data (i32.const 0x420) "\0c\00\00\00\02\00\00\00")                              ;; twelve tensors, two groups
(data (i32.const 0x480) "\0f\00\00\00\01\00\00\00")                              ;; "seeker", of 1
(data (i32.const 0x4a0) "\16\00\00\00\02\00\00\00")                              ;; "hiders", of 2
(data (i32.const 0x4c0) "\01\00\00\00\00\00\04\00\03\00\00\00")                  ;; the first group's, as in tensors.wat
(data (i32.const 0x4ec) "\02\00\00\00")
(data (i32.const 0x540) "\02\00\00\00\00\00\08\01\c5\00\00\00\02\00\00\00")
(data (i32.const 0x5c0) "\03\00\00\00\00\00\08\00\03\00\00\00")
(data (i32.const 0x640) "\04\00\00\00\00\00\01\00\03\00\00\00")
(data (i32.const 0x6c0) "\05\00\00\00\00\00\01\00\03\00\00\00")
(data (i32.const 0x740) "\07\00\00\00\00\00\08\01\c9\00\00\00\02\00\00\00")
(data (i32.const 0x7c0) "\01\00\00\00\01\00\04\00\03\00\00\00")                  ;; the second group's
(data (i32.const 0x7ec) "\03\00\00\00")
(data (i32.const 0x840) "\02\00\00\00\01\00\08\01\c5\00\00\00\03\00\00\00")
(data (i32.const 0x8c0) "\03\00\00\00\01\00\08\00\03\00\00\00")
(data (i32.const 0x940) "\04\00\00\00\01\00\01\00\03\00\00\00")
(data (i32.const 0x9c0) "\05\00\00\00\01\00\01\00\03\00\00\00")
(data (i32.const 0xa40) "\07\00\00\00\01\00\08\01\c9\00\00\00\03\00\00\00")
(data (i32.const 0xc0f) "seeker\00hiders\00")
