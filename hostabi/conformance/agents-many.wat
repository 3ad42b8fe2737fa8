;; More than 32,768 agents.
;; include memory
;; include head
;; include alloc
;; include create
;; include reset
;; include place
;; include episode
;; include loop_more
;; A group has six tensors, as tensors.wat has them, all of them per agent: the records are made of those of the first group. Bindings are at 0x8000.
(global $groups i32 (i32.const 9))
(func $count (param $g i32) (result i32) (select (i32.const 1) (i32.const 4096) (i32.eq (local.get $g) (i32.const 8)))) ;; agents of a group
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (local $g i32) (local $to i32) (local $k i32) (local $all i32)
  (local.set $all (i32.add (i32.const 160) (i32.mul (global.get $groups) (i32.const 803))))
  (if (i32.lt_u (local.get $cap) (local.get $all)) (then (return (local.get $all))))
  (memory.fill (local.get $buf) (i32.const 0) (local.get $all))
  (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 128))
  (loop $next
    (local.set $to (i32.add (local.get $buf) (i32.add (i32.const 128) (i32.shl (local.get $g) (i32.const 5)))))
    (i32.store (local.get $to) (i32.add (i32.const 32) (i32.mul (local.get $g) (i32.const 3)))) ;; its name: two letters
    (i32.store offset=4 (local.get $to) (call $count (local.get $g)))
    (local.set $k (i32.const 0))
    (local.set $to (i32.add (i32.add (local.get $buf) (i32.const 128)) (i32.add (i32.shl (global.get $groups) (i32.const 5)) (i32.mul (local.get $g) (i32.const 768)))))
    (memory.copy (local.get $to) (i32.const 0x480) (i32.const 768))
    (loop $each
      (i32.store16 offset=4 (local.get $to) (local.get $g))
      (local.set $to (i32.add (local.get $to) (i32.const 128)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $k) (i32.const 6))))
    (local.set $to (i32.add (i32.add (local.get $buf) (i32.const 160)) (i32.add (i32.mul (global.get $groups) (i32.const 800)) (i32.mul (local.get $g) (i32.const 3)))))
    (i32.store8 (local.get $to) (i32.add (i32.const 97) (i32.rem_u (local.get $g) (i32.const 16))))
    (i32.store8 offset=1 (local.get $to) (i32.add (i32.const 97) (i32.div_u (local.get $g) (i32.const 16))))
    (local.set $g (i32.add (local.get $g) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $g) (global.get $groups))))
  (memory.copy (i32.add (i32.add (local.get $buf) (i32.const 128)) (i32.mul (global.get $groups) (i32.const 800))) (i32.const 0xc00) (i32.const 32))
  (local.get $all))
(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (memory.copy (i32.const 0x8000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.const 288))
  (i32.const 0))
(func $row (param $g i32) (param $k i32) (param $t i32) (param $env i32) (param $agent i32) (result i32) ;; where an agent's row of a tensor begins
  (local $at i32)
  (local.set $at (i32.add (i32.const 0x8000) (i32.mul (i32.add (i32.mul (local.get $g) (i32.const 6)) (local.get $k)) (i32.const 48))))
  (i32.add (i32.add (i32.load (local.get $at)) (i32.mul (local.get $t) (i32.load offset=4 (local.get $at))))
    (i32.add (i32.mul (local.get $env) (i32.load offset=8 (local.get $at))) (i32.mul (local.get $agent) (i32.load offset=12 (local.get $at))))))
(func $elem (param $g i32) (param $k i32) (result i32)
  (i32.load offset=16 (i32.add (i32.const 0x8000) (i32.mul (i32.add (i32.mul (local.get $g) (i32.const 6)) (local.get $k)) (i32.const 48)))))
(func $act (param $t i32) (param $env i32) (result i32) ;; all agents do the same
  (local $g i32) (local $agent i32) (local $action i32)
  (local.set $action (i32.load (call $row (i32.const 0) (i32.const 0) (local.get $t) (local.get $env) (i32.const 0))))
  (if (i32.gt_u (local.get $action) (i32.const 1)) (then (return (i32.const -7)))) ;; RL_STATUS_ACTION
  (loop $next
    (local.set $agent (i32.const 0))
    (loop $each
      (if (i32.ne (local.get $action) (i32.load (call $row (local.get $g) (i32.const 0) (local.get $t) (local.get $env) (local.get $agent)))) (then (return (i32.const -7))))
      (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $agent) (call $count (local.get $g)))))
    (local.set $g (i32.add (local.get $g) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $g) (global.get $groups))))
  (local.get $action))
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (local $g i32) (local $agent i32) (local $at i32)
  (loop $next
    (local.set $agent (i32.const 0))
    (loop $each
      (local.set $at (call $row (local.get $g) (local.get $k) (local.get $t) (local.get $env) (local.get $agent)))
      (f32.store (local.get $at) (f32.convert_i32_s (i32.load (call $state (local.get $env)))))
      (f32.store (i32.add (local.get $at) (call $elem (local.get $g) (local.get $k))) (f32.convert_i32_s (i32.and (i32.load offset=4 (call $state (local.get $env))) (i32.const 7))))
      (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $agent) (call $count (local.get $g)))))
    (local.set $g (i32.add (local.get $g) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $g) (global.get $groups)))))
(func $more (param $t i32) (param $env i32) ;; reward and flags of the first agent are those of all
  (local $g i32) (local $agent i32)
  (loop $next
    (local.set $agent (i32.const 0))
    (loop $each
      (f32.store (call $row (local.get $g) (i32.const 2) (local.get $t) (local.get $env) (local.get $agent)) (f32.load (call $place (i32.const 2) (local.get $t) (local.get $env))))
      (i32.store8 (call $row (local.get $g) (i32.const 3) (local.get $t) (local.get $env) (local.get $agent)) (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env))))
      (i32.store8 (call $row (local.get $g) (i32.const 4) (local.get $t) (local.get $env) (local.get $agent)) (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env))))
      (local.set $agent (i32.add (local.get $agent) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $agent) (call $count (local.get $g)))))
    (local.set $g (i32.add (local.get $g) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $g) (global.get $groups)))))
(data (i32.const 0x410) "\04")                                                  ;; needs agents
(data (i32.const 0x480) "\01\00\00\00\00\00\04\00\03\00\00\00")                 ;; action
(data (i32.const 0x4ac) "\02\00\00\00")                                         ;;   of 2 values
(data (i32.const 0x500) "\02\00\00\00\00\00\08\01\c5\00\00\00\02\00\00\00")     ;; observation
(data (i32.const 0x580) "\03\00\00\00\00\00\08\00\03\00\00\00")                 ;; reward
(data (i32.const 0x600) "\04\00\00\00\00\00\01\00\03\00\00\00")                 ;; terminated
(data (i32.const 0x680) "\05\00\00\00\00\00\01\00\03\00\00\00")                 ;; truncated
(data (i32.const 0x700) "\07\00\00\00\00\00\08\01\c9\00\00\00\02\00\00\00")     ;; final observation
(data (i32.const 0x420) "\36\00\00\00\09\00\00\00")
(data (i32.const 0x42c) "\a0\1c\00\00\3b\00\00\00")
