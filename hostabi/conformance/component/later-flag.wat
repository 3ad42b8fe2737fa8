;; An unknown flag of a port, of a component of a later minor version.
;; include guest
;; include slot
(data (i32.const 0x406) "\09")
(data (i32.const 0x46c) "\80")
