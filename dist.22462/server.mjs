import { createRequire as $require } from 'node:module';const require = $require(import.meta.url), __dirname = import.meta.dirname;
import{programLine,serve}from"./chunks/chunk-PNOGVQRQ.mjs";import"./chunks/chunk-3KFRNRCY.mjs";import"./chunks/chunk-24YDKQP4.mjs";import"./chunks/chunk-ZWR7CPVP.mjs";import"./chunks/chunk-L5SVNLYX.mjs";import"./chunks/chunk-XBXIQA3H.mjs";import"./chunks/chunk-62PPOY72.mjs";import"./chunks/chunk-LX6N435E.mjs";import"./chunks/chunk-66BG7YUM.mjs";import"./chunks/chunk-AFLJIO6I.mjs";import"./chunks/chunk-YOZFD6PI.mjs";import"./chunks/chunk-KQXU5KJ7.mjs";import"./chunks/chunk-YADDXGEM.mjs";import{__name}from"./chunks/chunk-DVMKDCOT.mjs";import path from"node:path";var runServer=__name(({dataDir,listen,plainHttp,publicUrl})=>serve({dataDir,listen,plainHttp,publicUrl,note:__name(async()=>({}),"note"),greet:__name(async plane=>[plainHttp?"":await certificateLine(plane),addressLine(plane),firstUser(plane,dataDir)].join(""),"greet")}),"runServer");async function certificateLine({certificates}){let{publicKeyFingerprint,selfSigned}=(await certificates.current()).facts;return`Fingerprint of its public key (SHA-256):
  ${publicKeyFingerprint}
${selfSigned?`svc3 shows it on first use: compare the two before you say yes.
`:""}`}__name(certificateLine,"certificateLine");var addressLine=__name(({apiUrl,localUrl})=>apiUrl===localUrl&&new URL(apiUrl).hostname==="127.0.0.1"?`Clients on other machines can log in only when --url names the address that they use.
`:"","addressLine"),firstUser=__name(({localUsers},dataDir)=>`
${localUsers?`To make the first user, on this machine:
  ${programLine()} server users add EMAIL --admin --data ${path.resolve(dataDir)}`:"Users come from the identity provider in config.json."}
The API is described at /api/v1/swagger. Ctrl-C stops the service; the data stays.
`,"firstUser");export{runServer};
