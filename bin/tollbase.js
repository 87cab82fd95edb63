#!/usr/bin/env node
import { main } from '@tollbase/cli/main'

process.exitCode = await main(process.argv.slice(2))
