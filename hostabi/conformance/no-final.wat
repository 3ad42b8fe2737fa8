;; same_step is offered, and an observation has no final observation.
;; include guest
(data (i32.const 0x420) "\05")
