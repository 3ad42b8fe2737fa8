;; An action of one of several agents outside its space is refused: the host finds out whose it is where the guest does not say.
;; include groups
