;; Arguments that do not fit the description are refused by the host: the guest is not asked.
;; include asking
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (unreachable))
