import './operator.css';
import { start } from '../frame/start.tsx';
import { router } from './routes.tsx';

start(router);
