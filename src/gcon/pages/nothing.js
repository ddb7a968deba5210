// Every page has a script, if only this one: then its policy refuses all others by name.
"use strict";
