import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { IsString } from 'class-validator';
import { Playground } from './playground.js';

class ModeDto {
  @IsString()
  mode!: string;
}

class FaultDto {
  @IsString()
  name!: string;
}

/** Switches the mode and injects faults, for the page. */
@ApiExcludeController()
@Controller('page')
export class PlaygroundController {
  constructor(private readonly playground: Playground) {}

  @Post('mode')
  @HttpCode(204)
  useMode(@Body() { mode }: ModeDto): void {
    this.playground.use(mode);
  }

  @Post('faults')
  @HttpCode(204)
  inject(@Body() { name }: FaultDto): Promise<void> {
    return this.playground.inject(name);
  }
}
