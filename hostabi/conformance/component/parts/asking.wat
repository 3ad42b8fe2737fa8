;; What cases about requests are made from: they add rl_request.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include asked
;; include start
;; include slot
;; echo answers with the arguments.
(func $echo (param $request i32) (param $buf i32) (result i32)
  (memory.copy (local.get $buf) (i32.add (local.get $request) (i32.load offset=8 (local.get $request))) (i32.load offset=12 (local.get $request)))
  (i32.load offset=12 (local.get $request)))
