package capability

// BeneathFolded lets tests compare paths one by one.
var BeneathFolded = beneathFolded
