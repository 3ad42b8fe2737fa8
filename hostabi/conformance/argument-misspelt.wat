;; Where an argument is not known the host names those that are, and the nearest one.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include bind
;; include reset
;; include step
(func $given (param $config i32) (param $len i32) (result i32) ;; whether it is what the host was asked to give
  (local $i i32)
  (if (i32.ne (local.get $len) (i32.const 55)) (then (return (i32.const 0))))
  (loop $next
    (if (i32.ne (i32.load8_u (i32.add (local.get $config) (local.get $i))) (i32.load8_u offset=0xe00 (local.get $i))) (then (return (i32.const 0))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 55))))
  (i32.const 1))
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (local.get $len)
    (then (if (i32.eqz (call $given (local.get $config) (local.get $len))) (then (return (i32.const -5)))))) ;; RL_STATUS_CONFIG
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
(func (export "rl_create") (param $config i32) (param $len i32) (param $envs i32) (param $mode i32) (result i32)
  (if (i32.eqz (call $given (local.get $config) (local.get $len))) (then (return (i32.const -5))))
  (i32.store (i32.const 0x2f00) (local.get $mode))
  (i32.store (i32.const 0x2f04) (local.get $envs))
  (i32.const 0))
(data (i32.const 0x428) "\05") ;; five arguments
(data (i32.const 0x430) "\70")
(data (i32.const 0x780) "\0f\00\00\00\00\00\00\00\03\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00" "\14\00\00\00\00\00\00\00") ;; open
(data (i32.const 0x7b0) "\1a\00\00\00\00\00\00\00\05\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00" "\20\00\00\00\28\00\00\00") ;; rules
(data (i32.const 0x7e0) "\39\00\00\00\4e\00\00\00\01\00\00\00\01\00\00\00" "\00\00\00\00\00\00\f0\3f\00\00\00\00\00\00\33\40" "\3e\00\00\00\00\00\00\00") ;; size
(data (i32.const 0x810) "\40\00\00\00\00\00\00\00\02\00\00\00\02\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\40" "\46\00\00\00\00\00\00\00") ;; speed
(data (i32.const 0x840) "\48\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00") ;; title
(data (i32.const 0xc0f) "open\00false\00rules\00chinese\00chinese\0ajapanese\00size\009\00speed\001\00title\00side of the board\00")
(data (i32.const 0xe00) "open=true\0arules=japanese\0asize=3\0aspeed=1.5\0atitle=a game\0a")
