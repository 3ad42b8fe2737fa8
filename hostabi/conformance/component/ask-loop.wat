;; A request that is never answered is ended as any other call.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (loop $for_ever (br $for_ever))
  (i32.const 0))
