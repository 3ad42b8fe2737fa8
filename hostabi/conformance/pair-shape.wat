;; A final observation of another length than its observation.
;; include guest
(data (i32.const 0x70c) "\03")
