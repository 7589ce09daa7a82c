import { createRequire as $require } from 'node:module';const require = $require(import.meta.url), __dirname = import.meta.dirname;
import{__name}from"./chunk-DVMKDCOT.mjs";var systemClock={now:__name(()=>new Date,"now")},timestamp=__name(date=>`${date.toISOString().slice(0,19)}Z`,"timestamp");export{systemClock,timestamp};
