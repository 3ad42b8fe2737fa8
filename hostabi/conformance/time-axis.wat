;; A reward with the axis of time of an observation.
;; include guest
(data (i32.const 0x588) "\04")
