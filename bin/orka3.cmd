@echo off
rem svc3 under the name that public integrations call.
setlocal
set "SVC3_CALLED_AS=%~n0"
call "%~dp0svc3.cmd" %*
exit /b %errorlevel%
