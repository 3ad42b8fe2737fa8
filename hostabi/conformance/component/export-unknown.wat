;; An export that the ABI does not have is not looked at.
;; include guest
;; include slot
(func (export "rl_later") (unreachable)) (func (export "other") (unreachable))
