#!/usr/bin/env -S node --max-semi-space-size=32
import { main } from '@tollbase/cli/main'

process.exitCode = await main(process.argv.slice(2))
