@echo off
rem The svc3 command line on Windows. Servers and agents run on Linux and macOS only.
setlocal
if not defined SVC3_CALLED_AS set "SVC3_CALLED_AS=%~n0"
for %%c in (server agent dev) do if "%~1"=="%%c" goto unsupported
where /q node
if errorlevel 1 goto missing
if not exist "%~dp0..\dist\svc3.cjs" goto unbuilt
node "%~dp0start.mjs" %*
exit /b %errorlevel%
:unsupported
echo %SVC3_CALLED_AS%: svc3 %~1 runs on Linux and macOS only.>&2
echo %SVC3_CALLED_AS%: Run it there, and use the other commands here.>&2
exit /b 1
:missing
echo %SVC3_CALLED_AS%: Node not found. svc3 needs Node 24 or newer.>&2
echo %SVC3_CALLED_AS%: Install it from nodejs.org, then try again.>&2
exit /b 1
:unbuilt
echo %SVC3_CALLED_AS%: %~dp0.. is not built yet.>&2
echo %SVC3_CALLED_AS%: Run npm run build there on Linux or macOS, or install a package.>&2
exit /b 1
